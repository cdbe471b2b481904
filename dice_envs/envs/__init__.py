"""Environments: `aec` for PettingZoo, `gym` for Gymnasium, `sb3` for Stable-Baselines3, `openspiel` for OpenSpiel.

`learner` plays a learner's games against opponents; `gym` and `sb3` are built on it.
"""
