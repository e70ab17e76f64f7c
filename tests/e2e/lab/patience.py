"""How long anything here is waited for at most, in seconds. Every wait ends by an event; this is only the end of a test that
is stuck, so it is long enough for a machine that does five other things. What must *not* come is listened for elsewhere,
for as short a time as a test likes."""
PATIENCE = 300
