"""Workers: calls run on other machines, through NATS JetStream."""
