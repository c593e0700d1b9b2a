"""The question of ``distract meta``: does a judge agree with people, and with itself?"""
