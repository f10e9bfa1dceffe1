"""The ``tailrace`` command: the only reader of the command line's words.

One module per verb. What a verb does lies in the rooms below; here are its options,
its words on the terminal and its exit status.
"""
