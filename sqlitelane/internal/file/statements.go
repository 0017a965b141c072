package file

// Statements returns the texts of all prepared statements. No call may be under way.
func (f *File) Statements() (texts []string) {
	add := func(c *Conn) {
		for text := range c.statements {
			texts = append(texts, text)
		}
	}
	add(f.writer.conn)
	for range cap(f.readers) {
		c := <-f.readers
		add(c)
		f.readers <- c
	}
	return texts
}
