//go:build proof

package sqlitelane_test

func init() { thorough = true }
