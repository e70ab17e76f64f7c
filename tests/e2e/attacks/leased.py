"""What the attacks on leases have in common: whose they are, how one is asked for, what the audit says of one."""
import room  # noqa: F401
from attack import BOTH

NAMES = {"unix": "run-{}", "captured": "cap-{}"}  # of sandboxes that have a listener of their own


def name_of(transport, who="agent"):
    return NAMES.get(transport, "{}").format(who)


def known(rig, transport, who="agent"):
    """Its sandbox is there."""
    return rig.listener(name_of(transport, who), transport == "captured") if transport in NAMES else rig.gw.token(who)


def asked(rig, path, **what):
    status, said = rig.control("POST", path, what)
    assert status in (200, 201, 204), (status, said)
    return said


def refused(rig, what, got, code, **more):
    rig.refused(what, got, closed=False, status=403, **more)
    assert any(b + code.encode() + a in got.data for b, a in ((b'"code":"', b'"'), (b"<CountersignCode>", b"<"))), f"{what}: not {code}: {got}"


def leaked(rig, what, made, used_by, host):
    """The one record of a leak says whose it was, who used it, and for where; and it is dead."""
    found = rig.gw.recorded(kind="lease-leaked", lease=made["id"])
    rig.holds(what, len(found) == 1 and found[0]["used_by"] == used_by and found[0]["host"] == host, found)
    assert rig.control("GET", f"/api/v1/leases/{made['id']}")[1]["state"] == "leaked"
    return found[0]


def again(rig, transport, wire):
    return rig.open(transport, plain=wire.plain) if transport in BOTH else rig.open(transport)
