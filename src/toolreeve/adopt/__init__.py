"""Which agent clients are installed here, and how are the servers in their files taken over?"""
