"""Facts that change: is the current one shown above the old one, is the old one found when its history is asked for?"""
