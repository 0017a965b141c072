package rows

import (
	"testing"
)

// A slot that is reserved again until the same millisecond stands there already: its condition still has to hold, and DynamoDB refuses
// an update that changes nothing.
func TestMember_ChangesNothing_IsACheck(t *testing.T) {
	t.Parallel()
	slot := SlotItem{PK: "test:slots", SK: SlotSK(0), Run: "run_1", Until: 7}
	same := slot
	members, err := (&SlotChange{Put: &same, Before: &slot}).Writes()
	if err != nil || len(members) != 1 {
		t.Fatalf("%+v, %v", members, err)
	}
	table := "runs"
	write := members[0].Part(&table)
	if write.Update != nil || write.ConditionCheck == nil || *write.ConditionCheck.ConditionExpression != slot.Unchanged().Text {
		t.Errorf("%+v", write)
	}
	later := slot
	later.Until++
	if members, err = (&SlotChange{Put: &later, Before: &slot}).Writes(); err != nil || members[0].Part(&table).Update == nil {
		t.Errorf("a slot that is held longer is not written: %v", err)
	}
}
