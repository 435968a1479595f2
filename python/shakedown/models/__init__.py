"""The models: pure functions over arrays, units in their names, the source's equation in the docstring.

``processing``    sums over messages, mixtures of certificates, moments of queued messages (Bayoglu's thesis)
``queueing``      mean waits: M/G/1 (Pollaczek-Khinchine), M/M/1, M/D/c, M/M/c, M/G/c
``waiting``       the whole distribution of the wait, percentiles
``transmission``  bytes over a rate, traversal delay and its measurement, crossover rates
``transport``     packets, their headers, WEP
``distribution``  weighted points that add and mix
``primitives``    Daswani's additive model, key expansion, clock scaling
``access``        Kambourakis's NRT, RPT, THT, TST, SCRT; Shin's step shares
``energy``        energy per handshake, battery life
``handshake``     duration, highest rate within a promise
``ranges``        low, mean and high carried from input to answer
"""
