// Package constructs stands for github.com/aws/constructs-go/constructs/v10.
package constructs

// IConstruct is anything in the tree.
type IConstruct interface{ Node() Node }

// Construct is a construct.
type Construct interface {
	IConstruct
	ToString() *string
}

// Node is a construct's place in the tree.
type Node interface {
	Id() *string
	Scope() IConstruct
	TryFindChild(id *string) IConstruct
}

type node struct {
	id       string
	scope    IConstruct
	children map[string]IConstruct
}

func (n *node) Id() *string       { return &n.id }
func (n *node) Scope() IConstruct { return n.scope }

func (n *node) TryFindChild(id *string) IConstruct { return n.children[*id] }

type construct struct{ node *node }

func (c *construct) Node() Node        { return c.node }
func (c *construct) ToString() *string { return &c.node.id }

// NewConstruct puts a construct into the tree.
func NewConstruct(scope Construct, id *string) Construct {
	c := &construct{node: &node{id: *id, scope: scope, children: map[string]IConstruct{}}}
	if scope != nil {
		parent := scope.Node().(*node)
		if parent.children[*id] != nil {
			panic("there is a construct " + *id)
		}
		parent.children[*id] = c
	}
	return c
}
