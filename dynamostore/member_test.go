package dynamostore

import "testing"

// A slot that is reserved again until the same millisecond stands there already: its condition still has to hold, and DynamoDB refuses
// an update that changes nothing.
func TestMember_ChangesNothing_IsACheck(t *testing.T) {
	t.Parallel()
	slot := slotItem{PK: "test:slots", SK: slotSK(0), Run: "run_1", Until: 7}
	same := slot
	members, err := (&slotChange{put: &same, before: &slot}).members()
	if err != nil || len(members) != 1 {
		t.Fatalf("%+v, %v", members, err)
	}
	table := "runs"
	write := members[0].write(&table)
	if write.Update != nil || write.ConditionCheck == nil || *write.ConditionCheck.ConditionExpression != slot.unchanged().text {
		t.Errorf("%+v", write)
	}
	later := slot
	later.Until++
	if members, err = (&slotChange{put: &later, before: &slot}).members(); err != nil || members[0].write(&table).Update == nil {
		t.Errorf("a slot that is held longer is not written: %v", err)
	}
}
