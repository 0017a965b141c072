// Package embedded holds the decisions that memlane and sqlitelane share: which commands to refuse, when a run is due,
// the contents of cursors. Each lane stores runs in its own way.
package embedded
