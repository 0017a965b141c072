package ddb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

// What to do about an index: docs/operating.md, Changing an index.
const (
	untilActive = "wait until it is ACTIVE; deploy what reads it only then (docs/operating.md, Changing an index)"
	makeAnew    = "an index cannot be changed, only made anew (docs/operating.md, Changing an index)"
)

// IndexState has the fields of lane.IndexState.
type IndexState struct {
	Name           string
	Used, Readable bool
	Fault          *runlane.Error
}

// States tells of each index of the table whether the program can read it: its own first, then those that it does not
// know.
func (t *Table) States(ctx context.Context) ([]IndexState, error) {
	table, err := t.describe(ctx)
	if err != nil {
		return nil, err
	}
	var states []IndexState
	for _, want := range t.Indexes {
		states = append(states, ownState(table, want))
	}
	for i := range table.GlobalSecondaryIndexes {
		found := &table.GlobalSecondaryIndexes[i]
		name := aws.ToString(found.IndexName)
		if !slices.ContainsFunc(t.Indexes, func(own Index) bool { return own.Name == name }) {
			states = append(states, IndexState{Name: name, Readable: true, Fault: statusFault(found)})
		}
	}
	return states, nil
}

func ownState(table *types.TableDescription, want Index) IndexState {
	state := IndexState{Name: want.Name, Used: true}
	found := indexOf(table, want.Name)
	if found == nil {
		state.Fault = invalid("index "+want.Name+" is missing", makeAnew)
		return state
	}
	if faults := keyFaults("index "+want.Name, found.KeySchema, want.Hash, want.Sort); len(faults) > 0 {
		state.Fault = invalid(faults[0], makeAnew)
		return state
	}
	if state.Fault = statusFault(found); state.Fault != nil {
		return state
	}
	lacking, further := projectionFaults(found.Projection, want.Projected)
	switch state.Readable = lacking == ""; {
	case lacking != "":
		state.Fault = invalid(fmt.Sprintf("index %s has no %s: lists show less", want.Name, lacking), makeAnew)
	case further != "":
		message := fmt.Sprintf("index %s has %s, too, which costs units and shows nothing", want.Name, further)
		state.Fault = invalid(message, makeAnew)
	}
	return state
}

// statusFault is what keeps an index from being read, whatever it has; nil for nothing.
func statusFault(found *types.GlobalSecondaryIndexDescription) *runlane.Error {
	name := aws.ToString(found.IndexName)
	switch found.IndexStatus {
	case types.IndexStatusCreating:
		how := "is being made"
		if aws.ToBool(found.Backfilling) {
			how += ", of what the table has so far"
		}
		return &runlane.Error{
			Code:      runlane.ErrStorageUnavailable,
			Message:   "index " + name + " " + how,
			Hint:      untilActive,
			Retryable: true,
		}
	case types.IndexStatusDeleting:
		return invalid("index "+name+" is being deleted", "when it is gone, make it anew if a program reads it "+
			"(docs/operating.md, Changing an index)")
	default:
		return nil // it answers
	}
}

// projectionFaults names the attributes that an index lacks, and those that no program reads from it.
func projectionFaults(p *types.Projection, want []string) (lacking, further string) {
	if p != nil && p.ProjectionType == types.ProjectionTypeAll {
		return "", "all attributes"
	}
	var has []string
	if p != nil {
		has = p.NonKeyAttributes
	}
	return without(want, has), without(has, want)
}

func without(names, others []string) string {
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
	slices.Sort(rest)
	return strings.Join(rest, " ")
}

func indexOf(table *types.TableDescription, name string) *types.GlobalSecondaryIndexDescription {
	for i := range table.GlobalSecondaryIndexes {
		if aws.ToString(table.GlobalSecondaryIndexes[i].IndexName) == name {
			return &table.GlobalSecondaryIndexes[i]
		}
	}
	return nil
}

func invalid(message, hint string) *runlane.Error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}
