"""The question of ``distract attack``: does a rewrite that changes style alone change the verdict?"""
