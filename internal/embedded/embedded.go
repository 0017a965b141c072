// Package embedded is what the lanes in the process decide alike, the one in memory and the one on a SQLite file: which
// commands they refuse, when a run is due, what a cursor is. How runs are kept is theirs.
package embedded
