// Package awscdk stands for github.com/aws/aws-cdk-go/awscdk/v2: it has what the construct calls, as that declares it.
package awscdk

import (
	"fmt"
	"strings"

	"github.com/aws/constructs-go/constructs/v10"
)

// EncodingOptions are those of tokens.
type EncodingOptions struct{}

// Token_IsUnresolved says whether a value is known on deployment alone.
func Token_IsUnresolved(obj interface{}) *bool {
	unresolved := strings.Contains(fmt.Sprint(obj), "${Token[")
	return &unresolved
}

// Token_AsString is a value as a text.
func Token_AsString(value interface{}, _ *EncodingOptions) *string {
	text, ok := value.(string)
	if !ok {
		text = fmt.Sprintf("${Token[%v]}", value)
	}
	return &text
}

// App is an app.
type App interface {
	constructs.Construct
	Synth(options *StageSynthesisOptions) interface{}
}

// AppProps are those of an app.
type AppProps struct{}

// StageSynthesisOptions are those of Synth.
type StageSynthesisOptions struct{}

type app struct{ constructs.Construct }

func (a *app) Synth(*StageSynthesisOptions) interface{} { return nil }

// NewApp makes an app.
func NewApp(*AppProps) App { return &app{constructs.NewConstruct(nil, new(string))} }

// Stack is a stack.
type Stack interface {
	constructs.Construct
	StackName() *string
}

type stack struct{ constructs.Construct }

func (s *stack) StackName() *string { return s.Node().Id() }

var stacks = map[constructs.Construct]*stack{}

// StackProps are those of a stack.
type StackProps struct{}

// NewStack makes a stack.
func NewStack(scope constructs.Construct, id *string, _ *StackProps) Stack {
	s := &stack{constructs.NewConstruct(scope, id)}
	stacks[s.Construct] = s
	return s
}

// Stack_Of is the stack that a construct is in.
func Stack_Of(construct constructs.IConstruct) Stack {
	for at := construct; at != nil; at = at.Node().Scope() {
		if s, ok := at.(*stack); ok {
			return s
		}
		if c, ok := at.(constructs.Construct); ok && stacks[c] != nil {
			return stacks[c]
		}
	}
	panic("no stack")
}

// CfnResource is a resource of the template.
type CfnResource interface {
	AddPropertyOverride(propertyPath *string, value interface{})
	Ref() *string
}

// CfnOutput is an output of the template.
type CfnOutput interface{ Value() interface{} }
