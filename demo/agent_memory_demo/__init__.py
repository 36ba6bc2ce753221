"""The main job, for real: two amplifier-core sessions in two processes, with this bundle's modules.

Only the model is scripted. `python -m agent_memory_demo --home FOLDER` runs both days.
"""
