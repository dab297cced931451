"""Topics of a domain, sampled evenly over frequency and group."""
