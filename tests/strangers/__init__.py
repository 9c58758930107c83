"""Agents in the shape of others, with the pack: `# new` marks its lines, `# old` the rest."""
