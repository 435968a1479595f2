"""Benchmarks: what a part of the laboratory costs beside a peer, and whether that is within its target.

``python -m bench`` runs all of them, ``python -m bench NAME...`` some. A benchmark lives in a module of this
package and is listed in that module's ``BENCHMARKS``; nothing else has to know of it.
"""
