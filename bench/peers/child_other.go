//go:build !linux

package main

import "syscall"

// attributes are the system's own. As root, PostgreSQL then refuses to start and says so.
func attributes(*account) *syscall.SysProcAttr { return nil }

// inMemory reports whether a folder is known to be in memory.
func inMemory(string) bool { return false }
