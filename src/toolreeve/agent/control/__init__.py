"""Control protocol: carries an agent's questions, approvals and progress to a person, over any transport."""
