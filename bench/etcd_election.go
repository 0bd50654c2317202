// A holder for the comparison: leads an election of etcd's own client, concurrency.Election, and runs a ticking child meanwhile.
// As its documentation has it: the child is ended when the session is.
//
//	etcd_election ENDPOINT TTL TICKER FILE
package main

import (
	"context"
	"log"
	"os"
	"os/exec"
	"strconv"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ttl, err := strconv.Atoi(os.Args[2])
	must(err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	must(err)
	election := concurrency.NewElection(session, "bench-go")
	must(election.Campaign(context.Background(), os.Getenv("CROWN_NODE")))
	child := exec.Command(os.Args[3], os.Args[4])
	must(child.Start())
	<-session.Done()
	must(child.Process.Kill())
}
