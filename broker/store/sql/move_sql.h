/* The statements of who moves a whole store: of each table its rows after a key, one more row, and none any more. The
 * columns are those of SQLite; where another database has them elsewhere it says so in its own words. */
#ifndef BROKER_STORE_SQL_MOVE_SQL_H
#define BROKER_STORE_SQL_MOVE_SQL_H

/* clang-format off */
#define MOVE_GET(table, columns, key, after, limit) \
    "SELECT " columns " FROM " table " WHERE (" key ")>(" after ") ORDER BY " key " LIMIT " limit
#define MOVE_PUT(table, columns, values) "INSERT INTO " table "(" columns ") VALUES(" values ")"
#define MOVE_END(table) "DELETE FROM " table
#define MOVE_TENANT "tenant,served,conversations,open,keys,recorded"
#define MOVE_CONVERSATION "tenant,id,phase,created_ms,changed_ms,turns,messages,log_epoch,log_first,log_next,log_bytes,private"
#define MOVE_TURN "tenant,id,conversation,nth,state,cancelled,ready_ms,created_ms,started_ms,ended_ms,epoch,worker," \
    "claimed_until,claim_ms,lost,steps_max,tokens_max,cost_max,wall_max_ms,same_max,steps,tokens,cost,ending,why,asked," \
    "replays"
#define MOVE_STEP "tenant,turn,n,state,kind,home,attempts,began_ms,ended_ms,answer,message_state,filesystem_state_ref," \
    "execution_state,effect_log"
#define MOVE_CALL "tenant,turn,step,ord,tool,args,class,key,ending,result,effect,intent_ms,settled_ms"
#define MOVE_MESSAGE "tenant,conversation,seq,turn,role,body"
#define MOVE_DISPLAY "tenant,conversation,seq,turn,epoch,type,body,at_ms"
#define MOVE_KEY "tenant,key,request,conversation,turn,log_epoch,log_seq,at_ms"
#define MOVE_RECORDED "tenant,turn,part,at_ms,body"
#define MOVE_USAGE "tenant,day,conversation,model,task,asked,input,output,cache_read,cache_write,cost"
#define MOVE_V5 "?1,?2,?3,?4,?5"
#define MOVE_V6 MOVE_V5 ",?6"
#define MOVE_V8 MOVE_V6 ",?7,?8"
#define MOVE_V11 MOVE_V8 ",?9,?10,?11"
#define MOVE_V12 MOVE_V11 ",?12"
#define MOVE_V13 MOVE_V12 ",?13"
#define MOVE_V14 MOVE_V13 ",?14"
#define MOVE_V27 MOVE_V14 ",?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27"

#define SQL_MOVES(X) \
    X(MOVE_GET_TENANT, MOVE_GET("tenant", MOVE_TENANT, "tenant", "?1", "?2")) \
    X(MOVE_GET_CONVERSATION, MOVE_GET("conversation", MOVE_CONVERSATION, "tenant,id", "?1,?2", "?3")) \
    X(MOVE_GET_TURN, MOVE_GET("turn", MOVE_TURN, "tenant,id", "?1,?2", "?3")) \
    X(MOVE_GET_STEP, MOVE_GET("step", MOVE_STEP, "tenant,turn,n", "?1,?2,?3", "?4")) \
    X(MOVE_GET_CALL, MOVE_GET("tool_call", MOVE_CALL, "tenant,turn,step,ord", "?1,?2,?3,?4", "?5")) \
    X(MOVE_GET_MESSAGE, MOVE_GET("message", MOVE_MESSAGE, "tenant,conversation,seq", "?1,?2,?3", "?4")) \
    X(MOVE_GET_DISPLAY, MOVE_GET("display", MOVE_DISPLAY, "tenant,conversation,seq", "?1,?2,?3", "?4")) \
    X(MOVE_GET_KEY, MOVE_GET("chat_key", MOVE_KEY, "tenant,key", "?1,?2", "?3")) \
    X(MOVE_GET_RECORDED, MOVE_GET("recorded", MOVE_RECORDED, "tenant,turn,part", "?1,?2,?3", "?4")) \
    X(MOVE_GET_USAGE, MOVE_GET("usage", MOVE_USAGE, "tenant,day,conversation,model,task", "?1,?2,?3,?4,?5", "?6")) \
    X(MOVE_PUT_TENANT, MOVE_PUT("tenant", MOVE_TENANT, MOVE_V6)) \
    X(MOVE_PUT_CONVERSATION, MOVE_PUT("conversation", MOVE_CONVERSATION, MOVE_V12)) \
    X(MOVE_PUT_TURN, MOVE_PUT("turn", MOVE_TURN, MOVE_V27)) \
    X(MOVE_PUT_STEP, MOVE_PUT("step", MOVE_STEP, MOVE_V14)) \
    X(MOVE_PUT_CALL, MOVE_PUT("tool_call", MOVE_CALL, MOVE_V13)) \
    X(MOVE_PUT_MESSAGE, MOVE_PUT("message", MOVE_MESSAGE, MOVE_V6)) \
    X(MOVE_PUT_DISPLAY, MOVE_PUT("display", MOVE_DISPLAY, MOVE_V8)) \
    X(MOVE_PUT_KEY, MOVE_PUT("chat_key", MOVE_KEY, MOVE_V8)) \
    X(MOVE_PUT_RECORDED, MOVE_PUT("recorded", MOVE_RECORDED, MOVE_V5)) \
    X(MOVE_PUT_USAGE, MOVE_PUT("usage", MOVE_USAGE, MOVE_V11)) \
    X(MOVE_END_TENANT, MOVE_END("tenant")) \
    X(MOVE_END_CONVERSATION, MOVE_END("conversation")) \
    X(MOVE_END_TURN, MOVE_END("turn")) \
    X(MOVE_END_STEP, MOVE_END("step")) \
    X(MOVE_END_CALL, MOVE_END("tool_call")) \
    X(MOVE_END_MESSAGE, MOVE_END("message")) \
    X(MOVE_END_DISPLAY, MOVE_END("display")) \
    X(MOVE_END_KEY, MOVE_END("chat_key")) \
    X(MOVE_END_RECORDED, MOVE_END("recorded")) \
    X(MOVE_END_USAGE, MOVE_END("usage")) \
    X(MOVE_ID_GET, "SELECT id FROM move") \
    X(MOVE_ID_PUT, "INSERT INTO move(id) VALUES(?1)") \
    X(MOVE_ID_END, MOVE_END("move"))
/* clang-format on */

#endif
