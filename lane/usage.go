package lane

// Usage counts requests and capacity units of a storage that is paid for by them. On DynamoDB a write unit is one write
// of up to 1 KB, twice that in a transaction, plus one for each index entry put or removed; a read unit is one strongly
// consistent read of up to 4 KB.
type Usage struct {
	Requests   int64   `json:"requests"`   // to the storage; one of several writes counts once
	WriteUnits float64 `json:"writeUnits"` // see above
	ReadUnits  float64 `json:"readUnits"`  // half a unit where the read may be late
}

// Minus is what was used between two readings.
func (u Usage) Minus(before Usage) Usage {
	return Usage{u.Requests - before.Requests, u.WriteUnits - before.WriteUnits, u.ReadUnits - before.ReadUnits}
}

// UsageReader is the optional ability of a storage to say what it has used since it was made. Found with [As].
type UsageReader interface {
	// Usage returns a copy of the sums, by the names that the storage has for its operations. Safe for concurrent use.
	Usage() map[string]Usage
}
