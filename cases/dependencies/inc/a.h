// in every pass
