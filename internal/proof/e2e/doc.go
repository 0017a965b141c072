// Package e2e runs what users run, whole. Its tests have the tag e2e, which make e2e sets: they deploy the real
// template to local AWS and watch runs finish through its event source mappings, over updates, a rollback and another
// table. Without the tag, as in make test, the demo is killed and resumed.
package e2e
