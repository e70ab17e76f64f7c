"""Imported first by each test of this folder: the harness is one folder above, what started sandboxes need beside."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent), str(HERE.parent / "warden")]
