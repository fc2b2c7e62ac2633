// One franz-go consumer with the library's own defaults, until SIGTERM.
//
//	consume BOOTSTRAP GROUP TOPIC CLIENT_ID
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]),
		kgo.ClientID(os.Args[4]),
	)
	if err != nil {
		log.Fatal(err)
	}
	for ended.Err() == nil {
		client.PollFetches(ended)
	}
	client.Close()
}
