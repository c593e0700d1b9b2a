"""The question of ``distract consistency``: do verdicts on several responses fit together?"""
