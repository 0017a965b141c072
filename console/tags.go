package console

import (
	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// h holds the elements and attributes. They are called through variables to prevent inlining, which made the command
// line 0.9 MB larger.
var h = struct {
	El   func(string, ...g.Node) g.Node
	Attr func(string, ...string) g.Node

	A, Body, Button, Caption, Code, Dd, Details, Dialog, Div, Dl, Dt, Footer, Form, H1, H2, HTML,
	Head, Header, Input, Kbd, Label, Li, Link, Main, Meta, Nav, Option, P, Pre, SVG, Script,
	Section, Select, Span, Strong, Summary, TBody, THead, Table, Td, Textarea, Th, Time,
	TitleEl, Tr, Ul func(...g.Node) g.Node

	Action, AutoComplete, Charset, Class, ColSpan, Content, DateTime, For, Height, Href, ID, Lang,
	MaxLength, Method, Name, Placeholder, Rel, Role, Rows, Scope, Src, TabIndex, Title, Type,
	Value, Width func(string) g.Node

	Aria, Data func(string, string) g.Node

	Defer, Disabled, Required, Selected func() g.Node

	Doctype func(g.Node) g.Node
}{
	El:           g.El,
	Attr:         g.Attr,
	A:            html.A,
	Action:       html.Action,
	Aria:         html.Aria,
	AutoComplete: html.AutoComplete,
	Body:         html.Body,
	Button:       html.Button,
	Caption:      html.Caption,
	Charset:      html.Charset,
	Class:        html.Class,
	Code:         html.Code,
	ColSpan:      html.ColSpan,
	Content:      html.Content,
	Data:         html.Data,
	DateTime:     html.DateTime,
	Dd:           html.Dd,
	Defer:        html.Defer,
	Details:      html.Details,
	Dialog:       html.Dialog,
	Disabled:     html.Disabled,
	Div:          html.Div,
	Dl:           html.Dl,
	Doctype:      html.Doctype,
	Dt:           html.Dt,
	Footer:       html.Footer,
	For:          html.For,
	Form:         html.Form,
	H1:           html.H1,
	H2:           html.H2,
	HTML:         html.HTML,
	Head:         html.Head,
	Header:       html.Header,
	Height:       html.Height,
	Href:         html.Href,
	ID:           html.ID,
	Input:        html.Input,
	Kbd:          html.Kbd,
	Label:        html.Label,
	Lang:         html.Lang,
	Li:           html.Li,
	Link:         html.Link,
	Main:         html.Main,
	MaxLength:    html.MaxLength,
	Meta:         html.Meta,
	Method:       html.Method,
	Name:         html.Name,
	Nav:          html.Nav,
	Option:       html.Option,
	P:            html.P,
	Placeholder:  html.Placeholder,
	Pre:          html.Pre,
	Rel:          html.Rel,
	Required:     html.Required,
	Role:         html.Role,
	Rows:         html.Rows,
	SVG:          html.SVG,
	Scope:        html.Scope,
	Script:       html.Script,
	Section:      html.Section,
	Select:       html.Select,
	Selected:     html.Selected,
	Span:         html.Span,
	Src:          html.Src,
	Strong:       html.Strong,
	Summary:      html.Summary,
	TBody:        html.TBody,
	THead:        html.THead,
	TabIndex:     html.TabIndex,
	Table:        html.Table,
	Td:           html.Td,
	Textarea:     html.Textarea,
	Th:           html.Th,
	Time:         html.Time,
	Title:        html.Title,
	TitleEl:      html.TitleEl,
	Tr:           html.Tr,
	Type:         html.Type,
	Ul:           html.Ul,
	Value:        html.Value,
	Width:        html.Width,
}
