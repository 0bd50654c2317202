#include "child/children.h"

#include "base/container.h"

void children_init(struct children *children, struct loop *loop, struct link *link)
{
    *children = (struct children){.loop = loop, .link = link};
    list_init(&children->list);
}

void children_keeper_failed(struct children *children, const struct wire_message *message)
{
    list_each(node, &children->list)
    {
        struct children_member *member = container_of(node, struct children_member, node);
        if (member->keeper.id != message->id)
            continue;
        member->keeper_failed(member, message);
        return;
    }
}
