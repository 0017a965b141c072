// Package awsiam stands for the package of that name.
package awsiam

import "github.com/aws/constructs-go/constructs/v10"

// IGrantable is what can be allowed something.
type IGrantable interface{ GrantPrincipal() IPrincipal }

// IPrincipal is who is allowed it.
type IPrincipal interface {
	IGrantable
	AddToPrincipalPolicy(statement PolicyStatement) *AddToPrincipalPolicyResult
}

// AddToPrincipalPolicyResult says what came of it.
type AddToPrincipalPolicyResult struct{}

// PolicyStatement is a statement.
type PolicyStatement interface{ ToJSON() interface{} }

type statement struct{ value interface{} }

func (s *statement) ToJSON() interface{} { return s.value }

// PolicyStatement_FromJson reads a statement.
func PolicyStatement_FromJson(obj interface{}) PolicyStatement { return &statement{obj} }

// IRole is a role.
type IRole interface {
	IPrincipal
	RoleName() *string
}

// FromRoleNameOptions are those of Role_FromRoleName.
type FromRoleNameOptions struct{}

// Imported is a role that keeps what it is allowed.
type Imported struct {
	Name       *string
	Statements []interface{}
}

// RoleName is its name.
func (r *Imported) RoleName() *string { return r.Name }

// GrantPrincipal is itself.
func (r *Imported) GrantPrincipal() IPrincipal { return r }

// AddToPrincipalPolicy keeps the statement.
func (r *Imported) AddToPrincipalPolicy(s PolicyStatement) *AddToPrincipalPolicyResult {
	r.Statements = append(r.Statements, s.ToJSON())
	return &AddToPrincipalPolicyResult{}
}

// Role_FromRoleName is a role by its name.
func Role_FromRoleName(scope constructs.Construct, id *string, roleName *string, _ *FromRoleNameOptions) IRole {
	constructs.NewConstruct(scope, id)
	return &Imported{Name: roleName}
}
