// Package e2e deploys the real template to local AWS and watches runs finish through its event source mappings, over
// updates, a rollback and another table. Its tests have the tag e2e: make e2e.
package e2e
