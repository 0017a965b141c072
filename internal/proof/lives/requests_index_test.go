package lives

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/infra"
)

// row is an item, or an entry of an index.
type row = map[string]types.AttributeValue

func text(r row, name string) string {
	if s, ok := r[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// missed is how many queries of an index may show an item as it was before its last writes.
const missed = 2

// lateItem is what indexes may still show of an item: what it was before it was written.
type lateItem struct {
	old     row // nil: there was none
	misses  int // how often they still may
	request any // that wrote it
}

// writing remembers items as they are before a write. request is the same pointer when it is sent again.
func (c *faultyClient) writing(ctx context.Context, table *string, request any, keys []itemKey) {
	if c.rates[staleIndex] == 0 {
		return
	}
	for _, key := range keys {
		c.mu.Lock()
		known := c.late[key]
		again := known != nil && known.request == request
		c.mu.Unlock()
		if again {
			continue // it may have been carried out already
		}
		out, err := c.API.GetItem(ctx, &dynamodb.GetItemInput{
			TableName:      table,
			ConsistentRead: aws.Bool(true),
			Key: row{
				"pk": &types.AttributeValueMemberS{Value: key.pk}, "sk": &types.AttributeValueMemberS{Value: key.sk},
			},
		})
		if err != nil {
			continue // the write fares no better
		}
		c.mu.Lock()
		c.late[key] = &lateItem{old: out.Item, misses: missed, request: request}
		c.mu.Unlock()
	}
}

// Query implements dynamostore.API. A stale index shows what was written lately as it was before: it hides new entries
// and keeps old ones, until it has done so twice for an item. Tables are read as they are.
func (c *faultyClient) Query(
	ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	out, err := c.API.Query(ctx, in, o...)
	if err != nil || in.IndexName == nil || c.rates[staleIndex] == 0 {
		return out, err
	}
	stale, _ := c.strikes(staleIndex, "Query", in)
	page := pageOf(in, out)
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := map[itemKey]row{}
	for _, item := range out.Items {
		shown[keyOf(item)] = item
	}
	for key, late := range c.late {
		now, was := shown[key], page.entry(late.old)
		switch {
		case now == nil && was == nil:
			continue
		case !stale: // it has caught up
			delete(c.late, key)
			continue
		case now != nil && was != nil && text(now, page.sort) == text(was, page.sort):
			continue // the write did not move it
		}
		delete(shown, key)
		if was != nil {
			shown[key] = was
		}
		if late.misses--; late.misses == 0 {
			delete(c.late, key)
		}
	}
	page.show(out, shown)
	return out, nil
}

// indexPage is the part of an index that an answer is about.
type indexPage struct {
	in              *dynamodb.QueryInput
	hash, sort      string // the index's keys
	partition       string
	low, high       string // of the sort key
	above           bool   // than low, not at it
	backwards, more bool
	end             string // the last sort key of the answer, where there is more
	projected       []string
}

// indexForms are the forms that dynamostore asks indexes with.
var indexForms = regexp.MustCompile(`^(#\w+) = (:\w+) AND (#\w+) (?:BETWEEN (:\w+) AND (:\w+)|(>=?) (:\w+))$`)

func pageOf(in *dynamodb.QueryInput, out *dynamodb.QueryOutput) *indexPage {
	p := &indexPage{
		in:        in,
		backwards: !aws.ToBool(cmp.Or(in.ScanIndexForward, aws.Bool(true))),
		more:      out.LastEvaluatedKey != nil,
	}
	m := indexForms.FindStringSubmatch(aws.ToString(in.KeyConditionExpression))
	if m == nil {
		return p // entry finds nothing in it
	}
	name := func(alias string) string { return cmp.Or(in.ExpressionAttributeNames[alias], alias[1:]) }
	p.hash, p.sort, p.partition = name(m[1]), name(m[3]), text(in.ExpressionAttributeValues, m[2])
	p.low, p.high, p.above = text(
		in.ExpressionAttributeValues,
		m[4]+m[7],
	), text(in.ExpressionAttributeValues, m[5]), m[6] == ">"
	p.end = text(out.LastEvaluatedKey, p.sort)
	p.projected = []string{"pk", "sk", p.hash, p.sort}
	for _, index := range infra.TableInput("").GlobalSecondaryIndexes {
		if aws.ToString(in.IndexName) == aws.ToString(index.IndexName) {
			p.projected = append(p.projected, index.Projection.NonKeyAttributes...)
		}
	}
	return p
}

// entry is an item's entry in the page; nil: it has none there. Entries of one sort key with the page's ends count as
// beyond them.
func (p *indexPage) entry(item row) row {
	at := text(item, p.sort)
	if item == nil || p.hash == "" || at == "" || text(item, p.hash) != p.partition {
		return nil
	}
	if at < p.low || p.above && at == p.low || p.high != "" && at > p.high {
		return nil
	}
	start := text(p.in.ExclusiveStartKey, p.sort)
	if start != "" && p.compare(at, start) <= 0 || p.more && p.compare(at, p.end) >= 0 {
		return nil
	}
	out := row{}
	for _, name := range p.projected {
		if v, ok := item[name]; ok {
			out[name] = v
		}
	}
	return out
}

func (p *indexPage) compare(a, b string) int {
	if p.backwards {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// show makes the page of its entries, as they come, no more than were asked for.
func (p *indexPage) show(out *dynamodb.QueryOutput, shown map[itemKey]row) {
	order := map[itemKey]int{} // the emulator's own, among entries of one sort key
	for i, item := range out.Items {
		order[keyOf(item)] = i
	}
	out.Items = slices.SortedStableFunc(maps.Values(shown), func(a, b row) int {
		return cmp.Or(
			p.compare(text(a, p.sort), text(b, p.sort)),
			cmp.Compare(order[keyOf(a)], order[keyOf(b)]),
			cmp.Compare(keyOf(a).pk, keyOf(b).pk),
		)
	})
	if limit := int(aws.ToInt32(p.in.Limit)); limit > 0 && len(out.Items) > limit {
		out.Items = out.Items[:limit]
		last := out.Items[limit-1]
		out.LastEvaluatedKey = row{}
		for _, name := range p.projected[:4] {
			out.LastEvaluatedKey[name] = last[name]
		}
	}
	out.Count = int32(len(out.Items)) // a page
}
