"""Learning: presets, PPO, its loss, checkpoints."""
