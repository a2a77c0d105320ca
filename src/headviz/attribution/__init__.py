"""Which attention connections carried an answer: integration, maps, and what is read off them."""
