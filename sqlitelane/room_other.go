//go:build !linux && !darwin

package sqlitelane

func freeBytes(string) (bytes int64, known bool) { return 0, false }
