// Package formats keeps what versions of this project stored and sent, and holds today's code to it: in testdata there
// is a folder for each recording, with every kind of item, every type of event and the messages, of runs that were
// stopped in every state.
//
// Its tests record today's code again and compare it with the current recording; let today's code read every recording,
// project its histories, and bring its runs to their end; and let today's code work beside a newer one. What may
// change, and how, is in docs/compatibility.md.
package formats
