// Package embedded holds the decisions that memlane and sqlitelane share: which commands to refuse, when a run is due,
// what a cursor contains. Each lane stores runs in its own way.
package embedded
