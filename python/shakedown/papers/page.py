"""placeholder"""
from __future__ import annotations
def page(r): return ""
def index(r): return ""
