// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// web shows the API's notes as a page.
type web struct {
	api    string
	client http.Client
	pod    string
	page   *template.Template
}

const pageText = `<!doctype html>
<title>Notes</title>
<h1>Notes</h1>
<form method="post" action="/"><input name="text" maxlength="200" required><button>Add</button></form>
<ul>{{range .Notes}}<li>{{.Text}}</li>
{{end}}</ul>
<p>from pod {{.Pod}}</p>
`

func newWeb(api string) http.Handler {
	w := &web{api: api, client: http.Client{Timeout: 5 * time.Second},
		page: template.Must(template.New("page").Parse(pageText))}
	w.pod, _ = os.Hostname() // a page without it is one as well
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", w.show)
	mux.HandleFunc("POST /{$}", w.add)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

func (w *web) show(to http.ResponseWriter, r *http.Request) {
	notes, err := w.notes(r)
	if err != nil {
		http.Error(to, "the API does not answer: "+err.Error(), http.StatusBadGateway)
		return
	}
	to.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = w.page.Execute(to, map[string]any{"Notes": notes, "Pod": w.pod}) // whom it fails for has gone
}

func (w *web) notes(r *http.Request) ([]note, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, w.api+"/notes", nil)
	if err != nil {
		return nil, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return nil, fmt.Errorf("%s: %s", resp.Status, text)
	}
	var out []note
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

func (w *web) add(to http.ResponseWriter, r *http.Request) {
	resp, err := w.client.PostForm(w.api+"/notes", url.Values{"text": {r.FormValue("text")}})
	if err != nil {
		http.Error(to, "the API does not answer: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		http.Error(to, string(text), resp.StatusCode)
		return
	}
	http.Redirect(to, r, "/", http.StatusSeeOther)
}
