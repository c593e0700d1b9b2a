"""The question of ``distract leaderboard``: what do rewrites do to ratings and ranks?"""
