package main

import (
	"fmt"
	"math/rand/v2"
)

const (
	// payloadBytes is the length of every job's encoded form.
	payloadBytes = 200
	// firstNumber makes every number ten digits long, so that every job is as long as the others.
	firstNumber = 1_000_000_000
)

// job is the payload: the same Go value for everybody, the same JSON for everybody who encodes. A handler gets it
// decoded.
type job struct {
	Number int    `json:"number"`
	Filler string `json:"filler"`
}

// frame is what surrounds the filler in JSON: {"number":1000000000,"filler":""}.
const frame = 33

// newJobs makes n jobs with different numbers. The filler is random letters, so that no subject gains by compressing
// it.
func newJobs(random *rand.Rand, n int) []job {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	jobs := make([]job, n)
	filler := make([]byte, payloadBytes-frame)
	for i := range jobs {
		for k := range filler {
			filler[k] = letters[random.IntN(len(letters))]
		}
		jobs[i] = job{Number: firstNumber + i, Filler: string(filler)}
	}
	return jobs
}

// String keeps a failing test's output short.
func (j job) String() string { return fmt.Sprintf("job %d", j.Number-firstNumber) }
