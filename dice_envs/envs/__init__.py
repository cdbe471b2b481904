"""Environments: PettingZoo, Gymnasium, Stable-Baselines3, OpenSpiel."""
