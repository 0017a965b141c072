// Package deployforms holds the other forms of the deployment template equal to it: what the Terraform module and the
// CDK construct make is compared, resource by resource and policy by policy, with what SAM's translator says the
// template makes. Its tests need OpenTofu, the CDK and SAM's tools: make validate runs them.
package deployforms
