int host() { return 3; }
