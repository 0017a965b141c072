package ddbfault

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func keyOf(item map[string]types.AttributeValue) itemKey {
	text := func(name string) string {
		if s, ok := item[name].(*types.AttributeValueMemberS); ok {
			return s.Value
		}
		return ""
	}
	return itemKey{text("pk"), text("sk")}
}

// missed is how many queries of an index may leave out an item after it was written.
const missed = 2

// wrote remembers what was written.
func (c *Client) wrote(keys []itemKey) {
	if c.plan.Rates[StaleIndex] == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		c.late[key] = missed
	}
}

// Query implements dynamostore.API. A stale index leaves out what was written lately, until it has shown it once; tables are read
// as they are.
func (c *Client) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := c.API.Query(ctx, in, o...)
	if err != nil || in.IndexName == nil {
		return out, err
	}
	stale, _ := c.strikes(StaleIndex, "Query", in)
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Items = slices.DeleteFunc(out.Items, func(item map[string]types.AttributeValue) bool {
		key := keyOf(item)
		if stale && c.late[key] > 0 {
			c.late[key]--
			return true
		}
		delete(c.late, key)
		return false
	})
	out.Count = int32(len(out.Items)) //nolint:gosec // a page
	return out, nil
}
