// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
)

// apiServer keeps notes in a database.
type apiServer struct{ db *sql.DB }

func newAPI(url string) (*apiServer, error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(5)
	return &apiServer{db}, nil
}

func (a *apiServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /notes", a.list)
	mux.HandleFunc("POST /notes", a.add)
	mux.HandleFunc("GET /busy", busy)
	mux.HandleFunc("GET /healthz", a.health)
	return mux
}

// note is one note.
type note struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

const (
	table  = `CREATE TABLE IF NOT EXISTS notes (id serial PRIMARY KEY, text varchar(200) NOT NULL, at timestamptz NOT NULL DEFAULT now())`
	newest = `SELECT text, at FROM notes ORDER BY id DESC LIMIT 100`
	insert = `INSERT INTO notes (text) VALUES ($1)`
)

// health makes the table: a pod is ready when the database answers and has it. Two pods may do so at the same time.
func (a *apiServer) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	var has bool
	err := a.db.QueryRowContext(ctx, `SELECT to_regclass('notes') IS NOT NULL`).Scan(&has)
	if err == nil && !has {
		_, err = a.db.ExecContext(ctx, table)
	}
	if err != nil {
		http.Error(w, "the database does not answer: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (a *apiServer) list(w http.ResponseWriter, r *http.Request) {
	rows, err := a.db.QueryContext(r.Context(), newest)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer rows.Close()
	out := []note{}
	for rows.Next() {
		var n note
		if err := rows.Scan(&n.Text, &n.At); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		out = append(out, n)
	}
	if err := rows.Err(); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // whom it fails for has gone
}

func (a *apiServer) add(w http.ResponseWriter, r *http.Request) {
	text := r.FormValue("text")
	if text == "" || len(text) > 200 {
		http.Error(w, "text must be 1 to 200 bytes", http.StatusBadRequest)
		return
	}
	if _, err := a.db.ExecContext(r.Context(), insert, text); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// busy works for a while, so that there is something to scale for.
func busy(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.Atoi(r.FormValue("ms"))
	if err != nil || ms < 0 || ms > 1000 {
		http.Error(w, "ms must be 0 to 1000", http.StatusBadRequest)
		return
	}
	n := 0
	for until := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(until) &&
		r.Context().Err() == nil; {
		n++
	}
	fmt.Fprintln(w, n)
}
