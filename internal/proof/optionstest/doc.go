// Package optionstest proves that every field of every option struct refuses what is illegal, before anything is read
// or written.
package optionstest
