"""Agents in the shape of others, with this package: `# new` marks its lines, `# old` the rest."""
