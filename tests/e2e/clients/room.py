"""Imported first by each test of this folder: the harness is one folder above."""
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
