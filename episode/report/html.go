package report

import (
	"html/template"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger"
)

// HTML is the report as one <article> element, to stand in a page of the host's. It brings no style and no script; its
// classes begin with "mulligan-". Everything from outside is escaped.
func (r Report) HTML() string {
	var b strings.Builder
	// Neither the template nor writing to a Builder can go wrong: both are constant, and a test renders every branch.
	_ = template.Must(template.New("report").Funcs(template.FuncMap{
		"tone": tone, "lower": lower, "dash": orDash,
		"update": Update.sentence, "by": Update.journal, "culprit": Culprit.sentence, "what": Culprit.what,
		"proof": func(w Witness) string { return w.sentence(r.Counts.Total()) },
	}).Parse(page)).Execute(&b, r)
	return b.String()
}

// tone is the class of a state, by the same rule as its colour on a terminal.
func tone(state string) string {
	switch statePaint(ledger.State(state)) {
	case amber:
		return "mulligan-amber"
	case green:
		return "mulligan-green"
	case red:
		return "mulligan-red"
	}
	return "mulligan-plain"
}

const page = `<article class="mulligan-report" data-episode="{{.Episode}}">
<h2>↻ {{.Headline}}</h2>
<dl>
{{- with .Update}}{{if update .}}
<dt>Update</dt><dd>{{update .}}{{with by .}}<br>{{.}}{{end}}</dd>
{{- end}}{{end}}
{{- with .Culprit}}
<dt>Culprit</dt><dd>{{culprit .}}{{with what .}}<br>{{.}}{{end}}</dd>
{{- end}}
{{- range .Witnesses}}
<dt>Proof</dt><dd>{{proof .}}</dd>
{{- end}}
</dl>
{{- if .Agents}}
<table>
<thead><tr><th>Agent</th><th>Broke during</th><th>Broke on</th><th>Action</th><th>Now</th></tr></thead>
<tbody>
{{- range .Agents}}
<tr><td>{{.Name}}</td><td>{{.Phase}}</td><td>{{dash .Signature}}</td><td>{{.Action}}</td><td class="{{tone .State}}"><strong>{{.Now}}</strong></td></tr>
{{- end}}
</tbody>
</table>
{{- end}}
{{- if .LeftAlone}}
<h3>Left alone</h3>
<ul>
{{- range .LeftAlone}}
<li><strong>{{.Name}}</strong>: {{lower .Title}}. {{.Text}}
{{- with .Workspace}}<br>workspace: <code>{{.}}</code>{{end}}
{{- with .GoOn}}<br><code>{{.}}</code>{{end}}</li>
{{- end}}
</ul>
{{- end}}
{{- with .Why}}
<p>{{.}}</p>
{{- end}}
<p class="mulligan-dim">{{.Prevention}}</p>
</article>
`
